// Spheres, triangles, a floor, and groups of shapes.
#include "scene.h"
#include <algorithm>

uint64_t shapes_tried;

Shape::~Shape() = default;

namespace {

constexpr double NEAR = 1e-6;

class Sphere : public Shape {
public:
    Sphere(Vec c, double r, const Material &m) : place(c), size(r), material(m) {}
    bool meet(const Ray &ray, Hit &hit) const override
    {
        shapes_tried++;
        Vec away = ray.from - place;
        double b = away.dot(ray.to), d = b * b - away.dot(away) + size * size;
        if (d < 0)
            return false;
        double root = __builtin_sqrt(d), t = -b - root > NEAR ? -b - root : -b + root;
        if (t <= NEAR || t >= hit.distance)
            return false;
        Vec at = ray.at(t);
        hit = {t, at, (at - place) * (1 / size), &material};
        return true;
    }
    Vec centre() const override { return place; }
    double radius() const override { return size; }

private:
    Vec place;
    double size;
    const Material &material;
};

class Triangle : public Shape {
public:
    Triangle(Vec p, Vec q, Vec r, const Material &m)
        : a(p), ab(q - p), ac(r - p), normal(ab.cross(ac).unit()), material(m)
    {
    }
    bool meet(const Ray &ray, Hit &hit) const override
    {
        shapes_tried++;
        Vec p = ray.to.cross(ac);
        double det = ab.dot(p);
        if (det > -NEAR && det < NEAR)
            return false;
        Vec away = ray.from - a;
        double u = away.dot(p) / det;
        if (u < 0 || u > 1)
            return false;
        Vec q = away.cross(ab);
        double v = ray.to.dot(q) / det, t = ac.dot(q) / det;
        if (v < 0 || u + v > 1 || t <= NEAR || t >= hit.distance)
            return false;
        hit = {t, ray.at(t), normal.dot(ray.to) < 0 ? normal : normal * -1, &material};
        return true;
    }
    Vec centre() const override { return a + (ab + ac) * (1.0 / 3); }
    double radius() const override
    {
        Vec c = centre(), b = a + ab, d = a + ac;
        double most = std::max({(a - c).dot(a - c), (b - c).dot(b - c), (d - c).dot(d - c)});
        return __builtin_sqrt(most);
    }

private:
    Vec a, ab, ac, normal;
    const Material &material;
};

class Floor : public Shape {
public:
    Floor(double h, const Material &m) : height(h), material(m) {}
    bool meet(const Ray &ray, Hit &hit) const override
    {
        shapes_tried++;
        double t = (height - ray.from.y) / ray.to.y;
        if (!(t > NEAR && t < hit.distance))
            return false;
        hit = {t, ray.at(t), {0, 1, 0}, &material};
        return true;
    }
    Vec centre() const override { return {0, height, 0}; }
    double radius() const override { return 1e9; }

private:
    double height;
    const Material &material;
};

class Group : public Shape {
public:
    explicit Group(std::vector<std::unique_ptr<Shape>> list) : parts(std::move(list))
    {
        for (const auto &part : parts)
            place = place + part->centre() * (1.0 / double(parts.size()));
        for (const auto &part : parts) {
            Vec away = part->centre() - place;
            size = std::max(size, __builtin_sqrt(away.dot(away)) + part->radius());
        }
    }
    bool meet(const Ray &ray, Hit &hit) const override
    {
        shapes_tried++;
        Vec away = ray.from - place;
        double b = away.dot(ray.to), c = away.dot(away) - size * size;
        if (c > 0 && (b > 0 || b * b < c))
            return false;
        bool met = false;
        for (const auto &part : parts)
            met |= part->meet(ray, hit);
        return met;
    }
    Vec centre() const override { return place; }
    double radius() const override { return size; }

private:
    std::vector<std::unique_ptr<Shape>> parts;
    Vec place;
    double size = 0;
};

} // namespace

std::unique_ptr<Shape> make_sphere(Vec centre, double radius, const Material &material)
{
    return std::make_unique<Sphere>(centre, radius, material);
}

std::unique_ptr<Shape> make_triangle(Vec a, Vec b, Vec c, const Material &material)
{
    return std::make_unique<Triangle>(a, b, c, material);
}

std::unique_ptr<Shape> make_floor(double height, const Material &material)
{
    return std::make_unique<Floor>(height, material);
}

std::unique_ptr<Shape> make_group(std::vector<std::unique_ptr<Shape>> parts)
{
    if (parts.size() > 4) {
        auto half = parts.begin() + ptrdiff_t(parts.size() / 2);
        std::vector<std::unique_ptr<Shape>> rest(std::make_move_iterator(half), std::make_move_iterator(parts.end()));
        parts.erase(half, parts.end());
        std::vector<std::unique_ptr<Shape>> two;
        two.push_back(make_group(std::move(parts)));
        two.push_back(make_group(std::move(rest)));
        parts = std::move(two);
    }
    return std::make_unique<Group>(std::move(parts));
}
